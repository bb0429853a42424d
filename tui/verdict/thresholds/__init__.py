"""Every threshold of the verdict, each beside its reason; a rule says `policy.NAME`.

"diagnosis N" is section N of the project's diagnosis notes; "simulated" figures come from
tests/unit/verdict (test_engine, test_selection, test_memory), which keep them honest.
"""

from .causes import *
from .gpu import *
from .hysteresis import *
from .memory import *
