package pclntab

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of a file, not none; they begin at from of what is mapped.
func mapFile(f *os.File, offset, size uint64) (whole []byte, from uint64, err error) {
	from = offset % uint64(os.Getpagesize())
	whole, err = unix.Mmap(int(f.Fd()), int64(offset-from), int(size+from), unix.PROT_READ, unix.MAP_PRIVATE)
	return whole, from, err
}

// adviseUnneeded has the kernel read from the file again what is needed again.
func adviseUnneeded(whole []byte) { unix.Madvise(whole, unix.MADV_DONTNEED) } // if it does not, that takes memory only

func unmapFile(whole []byte) error { return unix.Munmap(whole) }
