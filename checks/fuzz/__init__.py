"""Fuzzing of everything that reads what a stranger wrote: `python -m checks.fuzz [--target NAME ...] [--seconds N]`.

Each target is a reader, or a whole load and a call, with inputs to begin with and a way to change them that knows their
structure.  It runs in a child process with limits on memory and time, in which every file that is opened for writing
and every process that is started is noticed.  An input fails where it ends the process (crash), takes too long (hang),
raises what is no ZooError (raw; for want of memory too), or writes, starts or connects to what it should not (outside).
"""
