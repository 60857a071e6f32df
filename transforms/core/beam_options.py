"""Beam's options, without a new parser each time Beam looks at them."""

from typing import TypeVar

from apache_beam.options.pipeline_options import PipelineOptions

V = TypeVar("V", bound=PipelineOptions)


class CachedOptions(PipelineOptions):
    """Options that build each view once: views share their values, and Beam asks for one at every step it applies."""

    def view_as(self, cls: type[V]) -> V:
        """Returns the options of `cls`, with the values of these."""
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        view: V = views[cls]
        return view
