package founding

// copied returns what an answer shows of another process that has this instance's ID, or "". If the
// two processes meet, exactly one of them refuses to take part.
func copied(s *sight, who *InstanceInfo) string {
	if who.Instance == s.instance {
		// self means that the answer comes from this process itself, through another address
		self := who.Addr == s.addr && who.Life == s.life
		if !self && yields(s, who) {
			return "another process runs as this instance at " + who.Addr + ", from a copy of this directory: " +
				recoveryHintCopy
		}
		return ""
	}
	listed := s.charter != nil && s.charter.listed(who.Instance) >= 0
	if !listed && !s.votes(who.Instance) {
		return "" // only a believed answer may bar this instance
	}
	switch {
	case who.AskerLife > s.life && who.AskerAddr == s.addr:
		return "this directory was restored from an older copy, and its instance was started since then: " + recoveryHintOld
	case who.AskerLife > s.life:
		return "this directory was restored from an older copy, or another process runs from a copy of it at " +
			who.AskerAddr + ": " + recoveryHintOld
	case who.AskerLife == s.life && who.AskerAddr != s.addr:
		return "another process has started as this instance at " + who.AskerAddr +
			", from a copy of this directory: " + recoveryHintCopy
	case who.AskerLife == s.life && who.AskerBoot != 0 && who.AskerBoot != s.boot:
		return "this directory was restored from an older copy: another process has made the same start from it: " +
			recoveryHintOld
	}
	return ""
}

const (
	recoveryHintCopy = "one directory serves only one process; empty this one, and the instance joins as a new one"
	recoveryHintOld  = "empty the directory, and the instance joins as a new one"
)

// yields reports whether it is this process that must refuse to take part, and not the other
// process with the same ID. If only one of the two is settling, that process refuses. Otherwise
// the process with the lower life refuses. If the lives are equal, the process with the higher
// address refuses.
func yields(s *sight, who *InstanceInfo) bool {
	switch {
	case s.settling != who.Resuming:
		return s.settling
	case s.life != who.Life:
		return s.life < who.Life
	}
	return s.addr > who.Addr
}
