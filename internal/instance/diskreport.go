package instance

import (
	"strings"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// An instance whose disk has a fault continues without a vote. It reports the fault to every voter,
// every two seconds until the fault ends. So a new leader knows the fault from its election on.

// FaultyDisk is an instance whose disk has a fault.
type FaultyDisk struct {
	Name     string
	Instance string
	DiskFault
}

const (
	diskReportFor  = 3*diskLookEvery + diskAskLimit // how long a report is valid
	diskAskLimit   = 2 * time.Second
	maxDiskReports = 64
	maxDiskText    = 512
)

type diskReports struct {
	mu   sync.Mutex // guards list
	list map[nodeid.ID]diskReport
}

type diskReport struct {
	fault DiskFault
	at    clock.Time
}

// keep stores a report from an instance. A nil fault removes the instance's previous report.
func (d *diskReports) keep(now clock.Time, from nodeid.ID, f *DiskFault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(now)
	_, known := d.list[from]
	switch {
	case f == nil:
		delete(d.list, from)
	case known || len(d.list) < maxDiskReports:
		if d.list == nil {
			d.list = map[nodeid.ID]diskReport{}
		}
		d.list[from] = diskReport{*f, now}
	}
}

// forget removes expired reports. The caller must hold mu.
func (d *diskReports) forget(now clock.Time) {
	for id, r := range d.list {
		if now.Sub(r.at) > diskReportFor {
			delete(d.list, id)
		}
	}
}

func (d *diskReports) all(now clock.Time) map[nodeid.ID]DiskFault {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(now)
	all := make(map[nodeid.ID]DiskFault, len(d.list))
	for id, r := range d.list {
		all[id] = r.fault
	}
	return all
}

func shortText(s string) string {
	return plain.Text(plain.Cut(s, maxDiskText))
}

func diskFaultOut(f *DiskFault) *query.DiskFault {
	if f == nil {
		return nil
	}
	// A path may contain any bytes.
	valid := func(s string) string { return strings.ToValidUTF8(s, "?") }
	return &query.DiskFault{State: string(f.State), Since: f.Since.UnixNano(), Cause: valid(f.Cause),
		Remedy: valid(f.Remedy)}
}

func diskFaultIn(m *query.DiskFault) *DiskFault {
	if m == nil {
		return nil
	}
	return &DiskFault{State: DiskState(shortText(m.State)), Since: time.Unix(0, m.Since), Cause: shortText(m.Cause),
		Remedy: shortText(m.Remedy)}
}
