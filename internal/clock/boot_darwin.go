package clock

import "golang.org/x/sys/unix"

// boot reads CLOCK_MONOTONIC_RAW of macOS, which includes the machine's sleep. Setting or slewing
// the wall clock does not change it. CLOCK_MONOTONIC also includes sleep, but is calculated from
// the wall clock. CLOCK_UPTIME_RAW, which Go's monotonic clock reads, stops in sleep.
func boot() Clock {
	return newDirect(func() (Time, bool) {
		var ts unix.Timespec
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts)
		return Time(ts.Nano()), err == nil
	})
}
