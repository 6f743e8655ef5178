package console

import (
	"fmt"

	"github.com/mortise-lock/mortise"
)

// idleHold is a lock of the instance that answers whose work must move: see mortise.IdleHold.
type idleHold struct {
	Key     string        `json:"key"`
	Token   mortise.Token `json:"token"`
	MaxIdle float64       `json:"max_idle_seconds"`
	Idle    float64       `json:"idle_seconds"` // since the last Beat that was noticed
}

func idleOf(s mortise.Status) (list []idleHold) {
	for _, h := range s.Idle {
		list = append(list, idleHold{h.Key, h.Token, inSeconds(h.MaxIdle), inSeconds(h.Idle)})
	}
	return list
}

// Text continues a sentence that begins with the key.
func (h idleHold) Text() string {
	return fmt.Sprintf("has had no Beat for %s of %s", span(seconds(h.Idle)), span(seconds(h.MaxIdle)))
}
