package payment

// EventTypes are the types of Stripe's events that the rules learn something
// from (stripe.md §3.1): what an endpoint should be subscribed to, and what
// reconciliation lists. The rules take what other types' objects say too, if
// such events come.
func EventTypes() []string {
	return []string{
		"checkout.session.completed",
		"checkout.session.async_payment_succeeded",
		"checkout.session.async_payment_failed",
		"checkout.session.expired",
		"payment_intent.succeeded",
		"payment_intent.amount_capturable_updated",
		"payment_intent.processing",
		"payment_intent.requires_action",
		"payment_intent.payment_failed",
		"payment_intent.canceled",
		"charge.succeeded",
		"charge.captured",
		"charge.failed",
		"charge.expired",
		"charge.updated",
		"charge.refunded",
		"charge.refund.updated",
		"refund.created",
		"refund.updated",
		"refund.failed",
		"charge.dispute.created",
		"charge.dispute.updated",
		"charge.dispute.funds_withdrawn",
		"charge.dispute.funds_reinstated",
		"charge.dispute.closed",
		"invoice_payment.paid",
	}
}
