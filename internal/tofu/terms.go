package tofu

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// delay is the lock delay of an address without lock_delay_seconds. During it the lock of a run
// whose agent is gone stays taken.
const delay = time.Hour

const maxSpan = 365 * 24 * time.Hour

// terms are the parameters of lock_address and unlock_address.
type terms struct {
	key         string
	delay, most time.Duration // zero most means no limit
	any         bool          // an UNLOCK without a lock info ends each hold
}

func readTerms(query url.Values) (t terms, err error) {
	t.delay = delay
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "key":
			t.key = value
		case "any":
			t.any, err = strconv.ParseBool(value)
		case "lock_delay_seconds":
			t.delay, err = span(value)
		case "max_hold_seconds":
			t.most, err = span(value)
		default:
			err = fmt.Errorf("there are only key, lock_delay_seconds, max_hold_seconds and any")
		}
		if err != nil {
			return t, bad("the address has the parameter %s=%s: %v", name, value, err)
		}
	}
	if t.key == "" {
		return t, bad("the address has no key: append ?key=KEY")
	}
	return t, nil
}

func span(value string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil || !(seconds >= 0 && seconds <= maxSpan.Seconds()) {
		return 0, fmt.Errorf("want a number of seconds from 0 to %v", maxSpan.Seconds())
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// lease names the lease of a run.
func (t terms) lease(id string) string { return fmt.Sprintf("%q %q", t.key, id) }
