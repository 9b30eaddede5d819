package history

// MostConnections is how many connections to its database an index may have.
func MostConnections(x *Index) int { return x.db.Stats().MaxOpenConnections }
