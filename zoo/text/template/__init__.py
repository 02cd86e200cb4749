"""The language of chat templates: `language` works a template out on the closed set of `values`.

A checkpoint's template is somebody else's program, so `child` does that in a process of its own, which `process`
starts, feeds and stops.  The child imports this package alone, and nothing else of zoo: it must start at once.
"""

import struct

LENGTH = struct.Struct("<Q")  # of a request, before it
HEAD = struct.Struct("<9sIQ")  # of an answer: its kind, the line of the template, the bytes of text that follow
