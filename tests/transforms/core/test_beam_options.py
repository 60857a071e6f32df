"""Beam's options: each view is built once, and all views share one set of values."""

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions, TypeOptions

from transforms.core.beam_options import CachedOptions

FLAGS = ["--direct_num_workers=3", "--runner=FlinkRunner"]


def test_a_view_is_built_once() -> None:
    options = CachedOptions(FLAGS)
    assert options.view_as(TypeOptions) is options.view_as(TypeOptions)
    assert CachedOptions(FLAGS).view_as(TypeOptions) is not options.view_as(TypeOptions)


def test_values_are_those_of_beams_own() -> None:
    ours, theirs = CachedOptions(FLAGS), PipelineOptions(FLAGS)
    assert ours.view_as(DirectOptions).direct_num_workers == theirs.view_as(DirectOptions).direct_num_workers == 3
    assert ours.get_all_options() == theirs.get_all_options()


def test_a_value_set_in_one_view_is_seen_in_all() -> None:
    options = CachedOptions(FLAGS)
    options.view_as(StandardOptions).streaming = True
    assert options.view_as(StandardOptions).streaming
    assert options.get_all_options()["streaming"]
