"""Arrays whose kind of numbers is decided elsewhere: by a setting, a file, or an environment."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]  # numpy types no arithmetic of NDArray[np.generic]
Arrays = dict[str, Array]  # by name, as files and checkpoints have them
