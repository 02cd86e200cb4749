"""The platform that zoo finds: this machine's, or the one that checks.elsewhere simulates around zoo's modules."""

from zoo.files import atomic_write

WINDOWS = atomic_write.os.name == "nt"
