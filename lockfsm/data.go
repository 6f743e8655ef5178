package lockfsm

// Data is a small value that is stored for a key until a Put changes it. A Put names the revision
// that its sender has read, so it never overwrites a newer value. A Put with a token also names a
// hold, and changes nothing unless that hold exists.
type Data struct {
	Value    []byte // never changed, so results may share it
	Revision Revision
	nonce    Nonce // nonce of the Put, to recognize a repetition
}

func (d *Data) hash() uint64 { return mixed(hash2, uint64(d.Revision)) }
