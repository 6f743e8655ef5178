package founding

import "errors"

// A recovery says whether operators may give the group of this instance up.
type recovery struct {
	*sight
	barred string // why this instance may never take part again; empty if it may
	unfit  string // why the directory cannot be written; empty if it can
}

// refusal returns why the group cannot be given up, or nil.
func (r *recovery) refusal(group uint64) error {
	name := groupName(group)
	if group == 0 {
		return errors.New("name the group that is given up, as the status of this instance shows it")
	}
	switch {
	case r.barred != "":
		return errors.New(r.barred)
	case r.phase == Newborn:
		return errors.New("this instance belongs to no group, so there is none to give up: call Recover on the " +
			"instances that keep group " + name)
	case r.group != group:
		return errors.New("this instance belongs to group " + groupName(r.group) + ", not to " + name +
			": name the one that its status shows")
	case r.unfit != "":
		return errors.New(r.unfit)
	case r.phase == Bound:
		return errors.New("group " + name +
			" is not known to be founded: start all its instances, then its founding completes or ends by itself")
	case r.settling:
		return errors.New("this instance has just been started and is still looking for other instances: try " +
			"again in two seconds")
	}
	if text := r.led(); text != "" {
		return errors.New("group " + name + " is not lost: " + text +
			"; wait until all instances of it reach that leader")
	}
	return nil
}
