package lockfsm

// Part is one key of a request, as its caller has asked for it.
type Part struct {
	Key         string
	Mode        Mode   // ModeIS if it is shared, ModeS if it is shared with all keys below; never ModeIX
	Permits, Of uint32 // with ModePermits, as in Command
	Tree        bool   // the request has an intention for each key above
}
