package stay

// Outlets carry out the output of a Set. They must not call the Set.
type Outlets interface {
	// Tell delivers news to their caller.
	Tell(*News)
	// Do carries out a command, and may keep it. If Do returns an error, the callers of an Acquire
	// fail with it.
	Do(*Command) error
}

// newsKept is the largest list of news whose memory is used again.
const newsKept = 1024

// Carry carries out the output of the calls since the last Carry: first all news, then all
// commands, in their order.
func (s *Set) Carry(o Outlets) {
	if len(s.commands)+len(s.news) > 0 { // most passes have none, and then this is inlined
		s.carry(o)
	}
}

func (s *Set) carry(o Outlets) {
	for len(s.commands)+len(s.news) > 0 {
		for i := range s.news {
			o.Tell(&s.news[i])
			s.news[i] = News{}
		}
		if s.news = s.news[:0]; cap(s.news) > newsKept {
			s.news = nil
		}
		commands := s.commands
		s.commands = nil
		for i := range commands {
			if err := o.Do(&commands[i]); err != nil && commands[i].Kind == Acquire {
				s.Failed(commands[i].Request, err)
			}
		}
	}
}
