"""Files that are whole or not there: atomic writes, manifests with hashes, checked headers, locks.

Knows bytes, names and disks. Refuses to know torch and what the bytes mean.
"""

from clearhead.files.atomic import discard, publish, sweep_partial, write_atomic
from clearhead.files.headers import check_tensors, read_checked
from clearhead.files.lock import RunLock
from clearhead.files.manifest import MANIFEST, Manifest, read_manifest, sha256_of, verify

__all__ = [
    "MANIFEST",
    "Manifest",
    "RunLock",
    "check_tensors",
    "discard",
    "publish",
    "read_checked",
    "read_manifest",
    "sha256_of",
    "sweep_partial",
    "verify",
    "write_atomic",
]
