package console

import (
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

const maxEnds = 12

// ending is an abnormal end of a hold, as returned by Node.Audit.
type ending struct {
	At       time.Time         `json:"at"`
	Position uint64            `json:"position,string"` // place of the event among all events
	Key      string            `json:"key"`
	Token    mortise.Token     `json:"token"`
	Holder   string            `json:"holder"`
	Kind     mortise.EventKind `json:"kind"` // as in mortise.Event
	Cause    mortise.Outcome   `json:"cause"`
	By       string            `json:"by,omitempty"`
	Reason   string            `json:"reason,omitempty"`
}

func endsOf(events []mortise.Event) []ending {
	ends := []ending{}
	for i := len(events) - 1; i >= 0 && len(ends) < maxEnds; i-- {
		e := events[i]
		if e.Key == "" {
			continue // no hold has ended: an operator has moved the lead
		}
		ends = append(ends, ending{e.At, e.Position, e.Key, e.Token, e.Holder, e.Kind, e.Cause, e.By, e.Reason})
	}
	return ends
}

func (e ending) Text() string {
	switch {
	case e.Cause == mortise.OutcomeForced && e.Reason != "":
		return fmt.Sprintf("hold of %s ended by force on %s: “%s”", plain.Text(e.Holder), plain.Text(e.By),
			clip(plain.Text(e.Reason), briefly))
	case e.Cause == mortise.OutcomeForced:
		return fmt.Sprintf("hold of %s ended by force on %s", plain.Text(e.Holder), plain.Text(e.By))
	case e.Kind == mortise.EventLeft && e.Cause == mortise.OutcomeExpired && e.Reason != "":
		return fmt.Sprintf("hold of %s is over and stays for its lock delay: %s", plain.Text(e.Holder),
			clip(plain.Text(e.Reason), briefly))
	case e.Cause == mortise.OutcomeExpired && e.Reason != "":
		return fmt.Sprintf("hold of %s is over: %s", plain.Text(e.Holder), clip(plain.Text(e.Reason), briefly))
	case e.Kind == mortise.EventLeft && e.Cause == mortise.OutcomeExpired:
		return fmt.Sprintf("session of %s has expired; the hold stays for its lock delay", plain.Text(e.Holder))
	case e.Kind == mortise.EventFreed && e.Cause == mortise.OutcomeExpired:
		return fmt.Sprintf("lost by %s: its session, or the lock delay after it, has expired", plain.Text(e.Holder))
	}
	return fmt.Sprintf("%s, %s: %s", plain.Text(e.Holder), e.Kind, e.Cause)
}

// Day returns the date of the event, or "" if the event happened on the same day as `now`.
func (e ending) Day(now time.Time) string {
	if day := e.At.UTC().Format(time.DateOnly); day != now.UTC().Format(time.DateOnly) {
		return day
	}
	return ""
}
