package main

import (
	"fmt"
	"io"
	"time"

	"github.com/mortise-lock/mortise/internal/plain"
)

// devGroup contains the instances of dev, and what has happened to them. Only the goroutine of the
// show uses it.
type devGroup struct {
	c        *call
	parts    []*devPart
	news     func(devNews) // gets what the processes report
	leader   string        // as printed last; empty means none
	leadBlow *blow         // what ended the last lead, until there is a new leader
	lockBlow *blow         // what ended the last hold of devKey, until there is a new holder
}

// blow is what a key did to an instance.
type blow struct {
	part *devPart
	what string // such as "dev-1 was killed"
	at   time.Time
}

func (b *blow) since() string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf(", %s after %s", took(time.Since(b.at)), b.what)
}

// took is short for people.
func took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// named returns the instance with a name, or with an ID, which is shown until the name is known.
func (g *devGroup) named(name string) *devPart {
	for _, p := range g.parts {
		if p.Name == name || p.id == name {
			return p
		}
	}
	return nil
}

// hit remembers what has happened to the leader or the holder.
func (g *devGroup) hit(p *devPart, what string) {
	b := &blow{p, p.Name + " " + what, time.Now()}
	if g.leader == p.Name {
		g.leadBlow = b
	}
	if p.holds != 0 {
		g.lockBlow = b
	}
}

// unhit forgets what has happened to an instance, because it is over before it had consequences.
func (g *devGroup) unhit(p *devPart) {
	if g.leadBlow != nil && g.leadBlow.part == p {
		g.leadBlow = nil
	}
	if g.lockBlow != nil && g.lockBlow.part == p {
		g.lockBlow = nil
	}
}

// devTone says whether a line is good news.
type devTone string

const (
	plainly devTone = ""
	well    devTone = "32"
	badly   devTone = "31"
	acted   devTone = "1" // what a key does
)

type devLine struct {
	At   time.Time
	Text string
}

// say prints a line.
func (g *devGroup) say(tone devTone, format string, args ...any) {
	text, now := plain.Sprintf(format, args...), time.Now()
	if g.c.json {
		_ = g.c.show(devLine{now, text}) // the next line fails too, and Ctrl-C ends dev
		return
	}
	if tone != plainly && g.c.colours() {
		text = "\x1b[" + string(tone) + "m" + text + "\x1b[m"
	}
	_, _ = io.WriteString(g.c.out, now.Format("15:04:05.000")+"  "+text+"\n")
}
