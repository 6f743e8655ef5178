package keeper

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

const roundAgain = 200 * time.Millisecond // an older unconfirmed round is requested again

// rounds are the renewals that a quorum has not confirmed. The attachments in waiters have a
// renewal that waits for the next round. Those in flying have a renewal that waits for the
// confirmation of its round.
type rounds struct {
	waiters, flying []*attachment
	number          uint64 // of the last round
	at              clock.Time
}

// forget begins another term. Numbers are not used again.
func (r *rounds) forget() { r.waiters, r.flying = nil, nil }

// next returns the number of a new round.
func (r *rounds) next() uint64 {
	r.number++
	return r.number
}

// await adds an attachment with a renewal to the attachments that wait for the next round. A
// renewal that was sent with an Attach waits until the Attach is proposed. So its round and the
// entry of the Attach are on their way at the same time.
func (r *rounds) await(a *attachment) {
	if a.waits && a.asked && !a.inWaiters {
		a.inWaiters = true
		r.waiters = append(r.waiters, a)
	}
}

// begin returns the round to request in this turn, if any. One round serves all waiting renewals,
// and further renewals wait for the next round. If the confirmation is late, begin requests a new
// round.
func (r *rounds) begin(now clock.Time) (round uint64, ok bool) {
	late := len(r.flying) > 0 && now.Sub(r.at) >= roundAgain
	if len(r.flying) > 0 && !late || len(r.flying)+len(r.waiters) == 0 {
		return 0, false
	}
	r.at, round = now, r.next()
	kept := r.waiters[:0]
	for _, a := range r.waiters {
		switch {
		case a.over || !a.waits:
			a.inWaiters = false
		case a.flies: // otherwise a slow quorum would never confirm a renewal
			kept = append(kept, a)
		default:
			a.inWaiters, a.waits = false, false
			a.flies, a.flySeq, a.round = true, a.waitSeq, round
			r.flying = append(r.flying, a)
		}
	}
	clear(r.waiters[len(kept):])
	r.waiters = kept
	return round, len(r.flying) > 0
}

// confirmed calls acknowledge for each renewal of this round and of earlier rounds.
func (r *rounds) confirmed(round uint64, acknowledge func(*attachment)) {
	kept := r.flying[:0]
	for _, a := range r.flying {
		if a.over || !a.flies {
			continue
		}
		if a.round > round {
			kept = append(kept, a)
			continue
		}
		a.flies = false
		acknowledge(a)
	}
	clear(r.flying[len(kept):])
	r.flying = kept
}
