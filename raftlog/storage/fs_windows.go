package storage

// syncDir does nothing: Windows cannot sync a directory, and NTFS writes its changes to a journal
// in order.
func syncDir(string) error { return nil }
