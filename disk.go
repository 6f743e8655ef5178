package mortise

import (
	"time"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/plain"
)

// DiskState says what is wrong with a disk.
type DiskState string

// The states of a [DiskFault].
const (
	DiskFailed  DiskState = "failed"  // after an error of the disk
	DiskHung    DiskState = "hung"    // while a call does not return
	DiskRemoved DiskState = "removed" // the directory was removed or replaced below the running instance
	DiskLow     DiskState = "low"     // a warning: less than Config.DirFreeBytes is left
)

// DiskFault is what is wrong with the disk of an instance with Config.Dir. It is a value of its own.
type DiskFault struct {
	State  DiskState
	Since  time.Time // when the instance noticed it, by its own wall clock
	Cause  string    // the error, with the path
	Remedy string    // what to do
}

// String returns the fault in a sentence. Texts are escaped: a fault that was received may contain anything.
func (f DiskFault) String() string {
	return plain.Sprintf("%s since %s (%s): %s", instance.DiskWords(instance.DiskState(f.State)), f.Since.UTC().Format(time.DateTime+" UTC"), f.Cause, f.Remedy)
}

// FaultyDisk is an instance whose disk has a fault. It is a value of its own.
type FaultyDisk struct {
	Name     string
	Instance string
	DiskFault
}

// diskFault is a fault as people are shown it, or nil.
func diskFault(f *instance.DiskFault) *DiskFault {
	if f == nil {
		return nil
	}
	return &DiskFault{State: DiskState(f.State), Since: f.Since, Cause: f.Cause, Remedy: f.Remedy}
}

// faultyDisks are faults as people are shown them.
func faultyDisks(list []instance.FaultyDisk) (all []FaultyDisk) {
	for i := range list {
		f := &list[i]
		all = append(all, FaultyDisk{Name: f.Name, Instance: f.Instance, DiskFault: *diskFault(&f.DiskFault)})
	}
	return all
}
