package clock

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func boot() Clock { return newDerived(kernel{origin: time.Now()}) }

// kernel reads the clocks of Linux.
type kernel struct{ origin time.Time }

func (k kernel) cheap() (wall, monotonic time.Duration) {
	now := time.Now()
	return time.Duration(now.UnixNano()), now.Sub(k.origin)
}

func (kernel) boot() Time {
	// A raw system call cannot block.
	var ts unix.Timespec
	if _, _, err := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)),
		0); err != 0 {
		// Linux has had this clock since 2.6.39. A zero time would mean "never".
		panic("mortise: this kernel has no CLOCK_BOOTTIME: " + err.Error())
	}
	return Time(ts.Nano())
}
