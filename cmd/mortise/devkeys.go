package main

import (
	"fmt"
	"io"
	"strings"
)

// This file is what the keys of dev do.

// devKeys remembers the first key of two.
type devKeys struct{ first byte }

// next returns the action for a key, and the number of the instance: 0 for actions of no instance.
// The action 0 means that another key is awaited, or that the key means nothing.
func (k *devKeys) next(key byte) (action byte, number int) {
	first := k.first
	k.first = 0
	switch {
	case key >= '1' && key <= '9':
		if first == 0 {
			first = devKill
		}
		return first, int(key - '0')
	case key == devCut || key == devPause:
		k.first = key
		return 0, 0
	case key == '\r' || key == '\n' || key == ' ' || key == '\t':
		return 0, 0
	case key == 3 || key == 4: // Ctrl-C and Ctrl-D of a terminal that sends no signal
		return devQuit, 0
	}
	return key, 0
}

// Actions of keys.
const (
	devKill  = 'k' // or start again
	devCut   = 'c' // or heal
	devPause = 'p' // or go on
	devHelp  = '?'
	devQuit  = 'q'
)

// keysText explains the keys for n instances.
func keysText(n int) string {
	var digits []string
	for i := range n {
		digits = append(digits, fmt.Sprint(i+1))
	}
	pause := ""
	if canPause {
		pause = "\n  p and a digit  pauses it (SIGSTOP), or lets it go on"
	}
	return fmt.Sprintf("keys:\n  %-13s  kills that instance (kill -9), or starts it again\n"+
		"  c and a digit  cuts it off from the others, or heals the cut%s\n"+
		"  ?              prints the keys\n  q, Ctrl-C      ends all\n", strings.Join(digits, " "), pause)
}

// act does what keys say. It reports whether that is the end of dev.
func (g *devGroup) act(action byte, number int) (over bool, err error) {
	switch {
	case action == 0:
	case action == devQuit:
		return true, nil
	case action == devHelp && g.c.json:
		g.say(plainly, "%s", keysText(len(g.parts)))
	case action == devHelp:
		_, err := io.WriteString(g.c.out, keysText(len(g.parts)))
		return false, err
	case number == 0:
		g.say(plainly, "%q is no key: ? prints the keys.", string(action))
	case number > len(g.parts):
		g.say(plainly, "There is no instance %d: -n is %d.", number, len(g.parts))
	default:
		p := g.parts[number-1]
		switch {
		case action == devKill:
			return false, g.killOrStart(p)
		case !p.running():
			g.say(plainly, "%s does not run: %d starts it.", p.Name, number)
		case action == devCut:
			return false, g.cutOrHeal(p, number)
		case action == devPause:
			return false, g.pauseOrGoOn(p)
		}
	}
	return false, nil
}

func (g *devGroup) killOrStart(p *devPart) error {
	if !p.running() {
		if err := p.start(g.news); err != nil {
			return err
		}
		g.say(acted, "%s starts again, as process %d.", p.Name, p.pid())
		return nil
	}
	held := ""
	if p.holds != 0 {
		held = fmt.Sprintf(" It held %s with token %s, which stays taken for up to %s, or until %s starts again.", devKey,
			tokenText(p.holds), took(devTTL), p.Name)
	}
	g.hit(p, "was killed")
	pid := p.pid()
	p.kill()
	g.say(acted, "%s is killed (kill -9 %d).%s%s", p.Name, pid, held, g.ledText(p))
	g.count()
	return nil
}

func (g *devGroup) cutOrHeal(p *devPart, number int) error {
	switch {
	case len(g.parts) == 1:
		g.say(plainly, "%s is the only instance: there is no other one to cut it off from.", p.Name)
		return nil
	case p.paused:
		g.say(plainly, "%s is paused: p%d lets it go on.", p.Name, number)
		return nil
	case p.cut:
		g.unhit(p)
		g.say(acted, "%s is connected again.", p.Name)
		p.setCut(false)
		return nil
	}
	p.setCut(true)
	g.hit(p, "was cut off")
	g.say(acted, "%s is cut off: it gets no byte from the others, and they get none from it.%s%s", p.Name,
		g.heldText(p), g.ledText(p))
	g.count()
	return nil
}

func (g *devGroup) pauseOrGoOn(p *devPart) error {
	if !canPause {
		g.say(plainly, "This system cannot pause a process.")
		return nil
	}
	if p.paused {
		g.unhit(p)
		g.say(acted, "%s goes on (SIGCONT).", p.Name)
		return p.setPaused(false)
	}
	if err := p.setPaused(true); err != nil {
		return err
	}
	g.hit(p, "was paused")
	g.say(acted, "%s is paused (SIGSTOP).%s%s", p.Name, g.heldText(p), g.ledText(p))
	g.count()
	return nil
}

func (g *devGroup) heldText(p *devPart) string {
	if p.holds == 0 {
		return ""
	}
	return fmt.Sprintf(" It holds %s with token %s, for up to %s more.", devKey, tokenText(p.holds), took(devTTL))
}

func (g *devGroup) ledText(p *devPart) string {
	if g.leader != p.Name {
		return ""
	}
	return " It led."
}

// count says when a majority is lost. With more instances than votes, the votes move.
func (g *devGroup) count() {
	acting := 0
	for _, p := range g.parts {
		if p.acts() {
			acting++
		}
	}
	if need := len(g.parts)/2 + 1; acting < need && len(g.parts) <= devVoters {
		g.say(badly, "%d of %d instances %s, and %d must agree: no lock is granted until another one is back.", acting,
			len(g.parts), plural(acting, "is left", "are left"), need)
	}
}
