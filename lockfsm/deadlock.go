package lockfsm

// circular reports whether the new request of c would wait for one of its owners. It returns the
// path to the owner. If unsearched is true, the search ended at its bound.
func (m *Machine) circular(s *session, c *view) (circle []Link, found, unsearched bool) {
	path, v := m.walk(s, c)
	if v == undecided {
		path, v = m.circularByPermits(s, c)
	}
	return path, v == isCircle, v == beyond
}
