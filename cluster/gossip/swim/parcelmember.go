package swim

// maxMemberFields is the maximum number of fields of a member in an exchange. memberlist sends
// seven.
const maxMemberFields = 15

// judgeMember checks one member of an exchange: a msgpack map whose values are numbers and texts.
// If the field Vsn is not empty, memberlist reads six protocol versions from it. Releases of
// memberlist before v0.7.0 do not check that there are six.
func (e *exchange) judgeMember() error {
	fields, err := e.more(1)
	if err != nil {
		return err
	}
	if fields[0]&0xf0 != 0x80 { // a map of at most maxMemberFields
		return errUnsound
	}
	for range fields[0] & maxMemberFields {
		name, isText, err := e.value()
		if err != nil {
			return err
		}
		versions := isText && string(name) == "Vsn"
		value, isText, err := e.value()
		if err != nil {
			return err
		}
		if versions && (!isText || len(value) > 0 && len(value) < 6) {
			return errUnsound
		}
		if len(e.head) > maxPacketBytes {
			return errUnsound
		}
	}
	return nil
}

// value reads a number, a truth value, nil or a text. It returns the bytes of a text.
func (e *exchange) value() (text []byte, isText bool, err error) {
	kind, err := e.more(1)
	if err != nil {
		return nil, false, err
	}
	size, k := 0, kind[0]
	switch {
	case k <= 0x7f, k == 0xc2, k == 0xc3:
		return nil, false, nil
	case k == 0xc0: // nil is read as an empty text
		return nil, true, nil
	case k >= 0xcc && k <= 0xd3:
		_, err = e.more(1 << ((k - 0xcc) % 4))
		return nil, false, err
	case k >= 0xa0 && k <= 0xbf:
		size = int(k & 0x1f)
	case k >= 0xc4 && k <= 0xc6, k >= 0xd9 && k <= 0xdb:
		first := byte(0xc4)
		if k >= 0xd9 {
			first = 0xd9
		}
		bytes, err := e.more(1 << (k - first))
		if err != nil {
			return nil, false, err
		}
		for _, x := range bytes {
			size = size<<8 | int(x)
		}
	default:
		return nil, false, errUnsound
	}
	if size > maxPacketBytes {
		return nil, false, errUnsound
	}
	text, err = e.more(size)
	return text, true, err
}
