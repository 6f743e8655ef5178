package clock

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// boot reads the interrupt time of Windows, which includes sleep and hibernation. Setting the wall
// clock does not change it. QueryInterruptTime and GetTickCount64 read the same clock, but only as
// of its last tick, which may be 16 ms ago: such a clock would be late.
func boot() Clock {
	const name = "QueryInterruptTimePrecise" // since Windows 10 and Server 2016
	for _, library := range []string{"kernelbase.dll", "kernel32.dll"} {
		query := windows.NewLazySystemDLL(library).NewProc(name)
		if query.Find() != nil {
			continue
		}
		address := query.Addr()
		return newDirect(func() (Time, bool) {
			var ticks uint64
			// The function has no result, so it cannot report a failure.
			syscall.SyscallN(address, uintptr(unsafe.Pointer(&ticks)))
			const tick = 100 * time.Nanosecond
			return Time(ticks) * Time(tick), ticks != 0
		})
	}
	return Monotonic()
}
