package store

// Watch has every read told of from now on, and returns the statements that the
// writer has made so far.
func Watch(s *Store, seen func(query string)) (written []string) {
	s.seen = seen
	for query := range s.w.tx.stmts {
		written = append(written, query)
	}
	return written
}
