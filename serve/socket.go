package serve

// transmitPlainly writes by the net.Conn, in pieces small enough that each is
// progress to go by.
func (c *conn) transmitPlainly(p []byte) (done int, err error) {
	const piece = 16 << 10
	for done < len(p) && err == nil {
		var n int
		c.out.begin(c.e.clock.now())
		n, err = c.nc.Write(p[done:min(len(p), done+piece)])
		c.out.end(c.e.clock.now(), n, &c.e.limits)
		done += n
	}
	return done, err
}
