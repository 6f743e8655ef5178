package clock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func boot() Clock { return boottime{} }

type boottime struct{}

func (boottime) Now() Time {
	// A raw system call cannot block. Every lock reads this clock several times, and Go does not
	// read it through the vDSO.
	var ts unix.Timespec
	if _, _, err := unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)),
		0); err != 0 {
		// Linux has had this clock since 2.6.39. A zero time would mean "never".
		panic("mortise: this kernel has no CLOCK_BOOTTIME: " + err.Error())
	}
	return Time(ts.Nano())
}
