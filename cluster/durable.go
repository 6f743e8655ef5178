package cluster

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// ErrUnsaved is returned if the directory of an instance cannot be written.
var ErrUnsaved = errors.New("cluster: the directory cannot be written")

// notebook writes the decisions of founding into the records.
type notebook struct {
	records  Records // nil in memory mode
	revision uint64  // revision of the stored State
	written  map[string][]byte
	failed   bool
}

// begin reads the directory, if there is one, and stores the next start number before anything is
// sent.
func (c *Cluster) begin() error {
	cfg := &c.cfg
	if cfg.Records == nil {
		c.own = newOwner(cfg, founding.Config{})
		return nil
	}
	last, err := recall(cfg.Records)
	if err != nil {
		return err
	}
	var before identity
	resume := founding.Config{Durable: true}
	if last != nil {
		if err := last.fits(cfg); err != nil {
			return err
		}
		before = last.identity
		resume.Stored = &last.state
	}
	id := identity{Life: before.Life + 1, Label: cfg.Label, Name: cfg.Name}
	id.Row = before.Row.Next(cfg.Site, id.Life)
	resume.Life = id.Life
	resume.Boot = c.id()
	c.own = newOwner(cfg, resume)
	c.own.notes = notebook{records: cfg.Records, written: map[string][]byte{}}
	if err := c.own.notes.save(map[string][]byte{recordIdentity: seal(id.append(nil))}, &c.own); err != nil {
		return fmt.Errorf("%w: %w: nothing has been changed; repair it and start again", ErrUnsaved, err)
	}
	return nil
}

// fits returns an error if the directory belongs to another instance. It logs changed settings and
// names.
func (s *stored) fits(cfg *Config) error {
	if s.identity.Label != cfg.Label {
		return fmt.Errorf("%w: it belongs to the cluster %q, and this instance to %q: use another directory, or "+
			"correct the name of the cluster",
			ErrDirectory, s.identity.Label, cfg.Label)
	}
	st := &s.state
	if st.Phase == founding.Newborn {
		return nil
	}
	if st.Instance != cfg.Key.ID() {
		return fmt.Errorf("%w: it belongs to instance %s, and Key is that of %s: set Key to that of Begins",
			ErrDirectory, st.Instance, cfg.Key.ID())
	}
	if st.Settings.Solo != cfg.Settings.Solo {
		if st.Settings.Solo {
			return fmt.Errorf("%w: it holds group %s, which was founded without Join and is closed: start without "+
				"Join, or empty the directory",
				ErrDirectory, idText(st.Group))
		}
		return fmt.Errorf("%w: it holds group %s, which has other instances: set Join as before, or empty the "+
			"directory", ErrDirectory, idText(st.Group))
	}
	if s.identity.Name != cfg.Name {
		cfg.Logger.Warn("the directory was last used under another name; if it is a copy, stop this instance and "+
			"empty it",
			"last", s.identity.Name, "now", cfg.Name)
	}
	if text := founding.Difference(cfg.Settings, st.Settings); text != "" && !st.Settings.Solo {
		cfg.Logger.Warn(text, "group", idText(st.Group))
	}
	return nil
}

// save stores changes and the current state of the core atomically. Values that are already stored
// are not written again.
func (n *notebook) save(changes map[string][]byte, o *owner) error {
	st, revision := o.core.Founding.State(), o.core.Founding.Revision()
	for name, content := range map[string][]byte{
		recordState: st.Append(nil), recordBook: founding.AppendVoters(nil, st.Voters),
		recordKey: o.keyOf(st.Instance).Seed(),
	} {
		if b := seal(content); !bytes.Equal(b, n.written[name]) {
			changes[name] = b
		}
	}
	if len(changes) > 0 {
		if err := n.records.Save(changes); err != nil {
			n.failed = true
			return err
		}
	}
	for name, b := range changes {
		n.written[name] = b
	}
	n.revision = revision
	return nil
}

// persist stores the state before any effect of a decision becomes visible. If storing fails,
// persist returns false, and removes all actions from out except those that need no promise. The
// caller must then not send the pending answer.
func (c *Cluster) persist(out *founding.Output) bool {
	n := &c.own.notes
	if n.records == nil || n.failed || n.revision == c.own.core.Founding.Revision() {
		return true
	}
	err := c.ctx.Err()
	if err == nil {
		err = n.save(make(map[string][]byte, 3), &c.own)
	}
	if c.ctx.Err() != nil { // after Close, nothing is sent or done
		*out = founding.Output{}
		return false
	}
	if err == nil {
		return true
	}
	*out = c.own.core.Unsaved(*out, err.Error())
	c.own.unsaved = fmt.Errorf("%w: %w: this instance no longer votes and takes no part in founding a group; "+
		"repair or empty it, and start the instance again", ErrUnsaved, err)
	return false
}

// reportUnsaved tells the host once that the directory has failed.
func (c *Cluster) reportUnsaved() {
	o := &c.own
	if o.unsaved == nil {
		return
	}
	err := o.unsaved
	o.unsaved = nil
	c.cfg.Logger.Warn(err.Error()) // the host reports it as an error
	c.cfg.Host.(DurableHost).Unsaved(err)
}

// refuse excludes this instance permanently, because its directory belongs to another instance.
func (c *Cluster) refuse(why string) {
	c.own.backlog = nil
	err := refusal(why)
	c.cfg.Logger.Error(err.Error())
	if c.gossip != nil && !c.left.Swap(true) {
		c.help(func() { c.gossip.Leave(leaveWithin) })
	}
	c.cfg.Host.(DurableHost).Refused(err)
	c.in.nextLife()
}
