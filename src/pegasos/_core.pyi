# The C++ core checks its arguments itself; to the type checker its objects are opaque. See cpp/bind/.
from typing import Any

def __getattr__(name: str) -> Any: ...
