"""gradsift for other programs: open a project, run it, ask it; `import gradsift` loads nothing heavy.

Public surface:
  Project                           a project by its folder or params file (this module)
  GradsiftError and its four kinds  what fails, with `exit_code`, where and remedy (scoring/core/errors.py)
The command line and the stages are listed in `pipelines`, the extension points in `transforms` and `scoring`.
"""

from gradsift.project import Project
from scoring.core.errors import ConfigError, DataError, GradsiftError, SchemaError, ToolError

__all__ = ["ConfigError", "DataError", "GradsiftError", "Project", "SchemaError", "ToolError"]
