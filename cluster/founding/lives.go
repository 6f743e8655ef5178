package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// acquaintances are the starts and names of other instances. A restart in place keeps them.
type acquaintances struct {
	lives []presence
	names []called
}

type presence struct {
	instance nodeid.ID
	life     uint64
	boot     uint64 // number of the process of that life; zero means unknown
	addr     string
	at       time.Duration // when the instance itself last answered or asked; zero means never
	wall     int64
}

type called struct {
	instance nodeid.ID
	name     string
}

// alive records a start of an instance with a directory. If two addresses or two processes claim
// the same life, alive keeps the first, because the second runs from a copy. The argument met says
// that the instance itself has answered or asked, at the times in seen.
func (a *acquaintances) alive(seen presence, met bool) {
	if seen.instance.IsZero() || seen.life == 0 || seen.addr == "" {
		return
	}
	at := slices.IndexFunc(a.lives, func(p presence) bool { return p.instance == seen.instance })
	if at < 0 {
		if len(a.lives) >= maxPlaces {
			a.lives = slices.Delete(a.lives, 0, 1)
		}
		a.lives = append(a.lives, presence{instance: seen.instance, life: seen.life, addr: seen.addr})
		at = len(a.lives) - 1
	}
	p := &a.lives[at]
	if seen.life > p.life+lifeJump && !met { // a false report, because no instance starts so often
		return
	}
	if seen.life > p.life {
		p.life, p.addr, p.boot = seen.life, seen.addr, 0
	}
	if seen.life == p.life && p.boot == 0 {
		p.boot = seen.boot
	}
	if met {
		p.at, p.wall = seen.at, seen.wall
	}
}

// listed records the starts that a configuration names, but not that of the given instance.
func (a *acquaintances) listed(voters []Voter, but nodeid.ID) {
	for _, v := range voters {
		if v.Instance != but {
			a.alive(presence{instance: v.Instance, life: v.Life, addr: v.Addr}, false)
		}
	}
}

func (a *acquaintances) lastMet(instance nodeid.ID) *presence {
	at := slices.IndexFunc(a.lives, func(p presence) bool { return p.instance == instance && p.at > 0 })
	if at < 0 {
		return nil
	}
	return &a.lives[at]
}

func (a *acquaintances) newestLife(instance nodeid.ID) (life, boot uint64, addr string) {
	if at := slices.IndexFunc(a.lives, func(p presence) bool { return p.instance == instance }); at >= 0 {
		return a.lives[at].life, a.lives[at].boot, a.lives[at].addr
	}
	return 0, 0, ""
}

// call records the name of an instance that has none yet.
func (a *acquaintances) call(instance nodeid.ID, name string) {
	if name == "" || instance.IsZero() {
		return
	}
	if len(a.names) >= maxCalled {
		a.names = slices.Delete(a.names, 0, 1)
	}
	a.names = append(a.names, called{instance, name})
}

// metAs returns the name under which an instance was met, or "".
func (a *acquaintances) metAs(instance nodeid.ID) string {
	if at := slices.IndexFunc(a.names, func(n called) bool { return n.instance == instance }); at >= 0 {
		return a.names[at].name
	}
	return ""
}
