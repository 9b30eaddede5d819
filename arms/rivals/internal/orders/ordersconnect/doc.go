// Package ordersconnect is Connect's handler and client of the orders, generated.
package ordersconnect
