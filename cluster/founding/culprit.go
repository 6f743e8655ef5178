package founding

import (
	"slices"
	"strconv"
)

// culprit names an instance that answers and has a wrong setting, with the correction. It returns
// "" if there is none. Because of such a setting this instance would report others as missing, so
// the culprit comes before them.
func (c *Core) culprit() string {
	list := c.present()
	if text := sameName(list); text != "" {
		return text + c.unused(list)
	}
	if text := c.misplaced(); text != "" {
		return text
	}
	return c.unequal(list)
}

// unequal names the instance whose settings differ from those of most newborns in reach, which may
// be this instance. Newborns that are no founders count too, because this instance may have the
// wrong list.
func (c *Core) unequal(list []candidate) string {
	at := slices.IndexFunc(list, func(l candidate) bool { return c.settings.unequal(l.settings) != "" })
	if at < 0 {
		return ""
	}
	all := c.newborns()
	for _, field := range comparedFields() {
		for _, most := range all {
			var alike []string
			var odd *candidate
			for i, o := range all {
				switch {
				case !o.settings.unlike(most.settings, field):
					alike = append(alike, nameOf(o.name, o.addr))
				case odd == nil && (o.instance == c.instance || c.settings.founds(o.name)):
					odd = &all[i]
				}
			}
			if 2*len(alike) > len(all) && odd != nil {
				return nameOf(odd.name, odd.addr) + " has another " + field + " (" + odd.settings.value(field) + ") than " +
					some(alike) + " (" + most.settings.value(field) + "): make them equal on all"
			}
		}
	}
	which, own, other := c.settings.difference(list[at].settings)
	return nameOf(list[at].name, list[at].addr) + " has another " + which + " (" + other + ") than this instance (" +
		own + "): make them equal on all"
}

// newborns returns this instance and the newborns that answer at their own addresses.
func (c *Core) newborns() []candidate {
	all := []candidate{{instance: c.instance, name: c.name, addr: c.addr, settings: c.settings}}
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if ok && who.Phase == Newborn && !who.Settings.Solo && who.Addr == p.addr && who.Instance != c.instance {
			all = append(all, candidate{instance: who.Instance, name: who.Name, addr: who.Addr, settings: who.Settings})
		}
	}
	return all
}

// unused names the founders under whose names no listed instance runs.
func (c *Core) unused(list []candidate) string {
	var free []string
	here := names(list)
	for _, f := range c.settings.Founders {
		if !slices.Contains(here, f) {
			free = append(free, strconv.Quote(f))
		}
	}
	if len(free) == 0 {
		return ""
	}
	return "; no instance is called " + some(free)
}

// strays returns the places whose instance calls itself by another address, at which it was not
// met.
func (c *Core) strays() (list []*place) {
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if !ok || who.Phase != Newborn || who.Settings.Solo || who.Addr == "" || who.Addr == p.addr ||
			who.Instance == c.instance || !c.settings.founds(who.Name) {
			continue
		}
		at, found := find(c.places, who.Addr)
		if found {
			if there, ok := c.places[at].seen(c.now, sampledFor); ok && there.Instance == who.Instance {
				continue
			}
		}
		list = append(list, p)
	}
	return list
}

// misplaced names an instance whose own address leads to another place, or returns "".
func (c *Core) misplaced() string {
	for _, p := range c.strays() {
		who := &p.last.info
		says := strconv.Quote(who.Name) + " calls itself " + who.Addr + ", "
		step := ": correct its Advertise (it answers at " + p.addr + ")"
		if who.Addr == c.addr {
			return says + "the address of " + strconv.Quote(c.name) + step
		}
		at, found := find(c.places, who.Addr)
		if !found || !c.places[at].tried {
			continue
		}
		switch there := c.places[at]; {
		case there.mute:
			return says + "where no instance answers" + step
		case !there.last.fresh(c.now, sampledFor):
		case there.last.outcome == Refused:
			return says + "where nothing listens" + step
		case there.last.outcome == Foreign:
			return says + "where another cluster or another program listens" + step
		case there.last.outcome == Answered:
			return says + "where " + strconv.Quote(there.last.info.Name) + " listens" + step
		}
	}
	return ""
}

// unlisted names newborn instances at Join addresses that are not among the Founders. One of them
// may be a missing founder under another name.
func (c *Core) unlisted() string {
	var list []string
	for _, p := range c.places {
		who, ok := p.seen(c.now, metFor)
		if ok && p.entry != "" && who.Phase == Newborn && !who.Settings.Solo && !c.settings.founds(who.Name) &&
			!slices.Contains(list, p.label()) {
			list = append(list, p.label())
		}
	}
	switch len(list) {
	case 0:
		return ""
	case 1:
		return "; " + list[0] + " runs and is not one of the Founders: if it should be, correct its Name, or Founders " +
			"on all instances"
	}
	return "; " + some(list) + " run and are not among the Founders: if one of them should be, correct its Name, or " +
		"Founders on all instances"
}
