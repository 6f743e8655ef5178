package timeline

import "time"

const (
	focusTTLs  = 6               // the large drawing begins at least this many TTLs before the objection
	focusReach = 2 * time.Minute // and at most this long before it, to show the faults
)

// Focus sets From, To and Near by At, which is in the run, and by the times of the faults, in
// ascending order. To must be the end of the run. The large drawing shows the faults before the
// objection. If the last one would be small there, the third drawing begins just before it.
func (p *Page) Focus(ttl time.Duration, faults []time.Duration) {
	p.From = max(0, p.At-focusTTLs*ttl)
	for _, at := range faults {
		if at < p.From && p.At-at < focusReach {
			p.From = max(0, at-ttl/2)
			break
		}
	}
	p.To = min(p.To, p.At+ttl)
	for _, at := range faults {
		if near := at - max(p.At-at, 10*time.Millisecond)/2; at <= p.At && p.At-near < (p.At-p.From)/4 {
			p.Near, p.To = near, min(p.To, p.At+(p.At-near)/2)
		}
	}
}
