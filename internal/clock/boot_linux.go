package clock

import "golang.org/x/sys/unix"

func boot() Clock { return boottime{} }

type boottime struct{}

func (boottime) Now() Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		// The kernel has had this clock since 2.6.39, and Go needs a newer one; a zero time would read as "never".
		panic("mortise: this kernel has no CLOCK_BOOTTIME: " + err.Error())
	}
	return Time(ts.Nano())
}
