//go:build !linux && !darwin && !windows

package clock

func boot() Clock { return Monotonic() }
