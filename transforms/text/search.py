"""The kernel that looks a value up in a sorted array."""

from scoring.core.arrays import Array
from scoring.core.jit import kernel


@kernel
def lower_bound(values: Array, low: int, high: int, wanted: int) -> int:
    """Returns where the first of the ascending `values[low:high]` stands that is not below `wanted`, else `high`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
