package stripefake

import (
	"fmt"
	"math/rand/v2"
)

// LifeOptions bound a random life.
type LifeOptions struct {
	Seed  uint64 // of the ids, which no two lives in one database may share
	Steps int    // at most; 0 is 24
}

// DrawLife draws a random life of one shop's order, at times with a second one
// and with payments that are nobody's or another program's. Everything in it is
// legal at Stripe.
//
// Some steps are never drawn on the second of the one before: a bank that takes
// its word back does so days later, and no rule could order two such words of
// one second. In the same way a Classic account, which tells of few refunds by
// themselves, does nothing that its charges' one number amount_refunded cannot
// tell apart.
func DrawLife(rng *rand.Rand, opt LifeOptions) Life {
	if opt.Steps == 0 {
		opt.Steps = 24
	}
	d := &drawing{rng: rng}
	d.life = Life{Seed: opt.Seed, World: d.world()}
	d.stage = newStage(opt.Seed, d.life.World)
	d.orders()
	d.take(d.opening())
	if len(d.openings) > 0 && !d.one(4) {
		d.take(Step{Act: ActPay, On: d.openings[0]})
	}
	for range 2 + rng.IntN(opt.Steps-1) {
		d.take(d.next())
	}
	d.register()
	d.life.setTruth(d.stage.account)
	if d.one(10) {
		for _, e := range d.life.Events {
			if d.one(5) {
				d.life.Lost = append(d.life.Lost, e.ID)
			}
		}
		d.life.setTruth(d.stage.account)
	}
	return d.life
}

// drawing is a life while it is drawn.
type drawing struct {
	rng   *rand.Rand
	life  Life
	stage *stage
	tried int

	openings []int // the numbers of the steps that began a payment
	refunds  []int
	disputes []int
	unit     int64 // amounts of the currency are multiples of this
}

// one is true once in n times.
func (d *drawing) one(n int) bool { return d.rng.IntN(n) == 0 }

// pick chooses one of the acts, each as likely as it stands there.
func pick[T any](d *drawing, choices ...T) T { return choices[d.rng.IntN(len(choices))] }

// amount is a random amount of at most limit.
func (d *drawing) amount(limit int64) int64 {
	units := limit / d.unit
	if units <= 1 {
		return limit
	}
	return d.unit * (1 + d.rng.Int64N(units))
}

func (d *drawing) world() Config {
	w := Config{APIVersion: Basil, Start: 1750000000, Release: pick(d, ReleaseHidden, ReleaseAmount, ReleaseRefund), BareDisputes: d.one(2)}
	if d.one(3) {
		w.APIVersion = Classic
		w.Release = ReleaseAmount
	}
	if w.APIVersion == Basil {
		w.FailureLowers = d.one(2)
	}
	if d.one(3) {
		w.Settlement = "eur"
	}
	return w
}

// orders draws what the shop sells.
func (d *drawing) orders() {
	currency := pick(d, "eur", "eur", "eur", "usd", "jpy", "kwd", "isk")
	d.unit = map[string]int64{"kwd": 10, "isk": 100}[currency]
	d.unit = max(d.unit, 1)
	names := []string{"A", "B"}
	if !d.one(3) {
		names = names[:1]
	}
	for _, name := range names {
		o := Order{
			ID: fmt.Sprintf("%s%d", name, d.life.Seed), Currency: currency, Total: d.unit * (10 + d.rng.Int64N(2000)),
			Policy: pick(d, "exact", "exact", "exact", "at_least", "any", "subtotal", "subtotal"),
		}
		o.AllowDiscount = d.one(2)
		if d.one(12) {
			o.Total = 0
		}
		d.life.Orders = append(d.life.Orders, o)
	}
}

// take takes a step, if Stripe lets it.
func (d *drawing) take(step Step) {
	d.tried++
	step.N = d.tried
	if step.Wait == 0 && !d.one(3) {
		step.Wait = pick[int64](d, 0, 1, 2, 60, 3600, 90000)
	}
	switch step.Act {
	case ActRefundArrives, ActReinstate, ActTurn, ActWin, ActLose, ActAnswer:
		step.Wait = max(step.Wait, 1)
	}
	if step.Act == "" || d.stage.do(step) != nil {
		return
	}
	d.life.Steps = append(d.life.Steps, step)
	switch step.Act {
	case ActOpenSession, ActCreateIntent, ActChargeDirectly, ActSubscribe, ActRenew:
		d.openings = append(d.openings, step.N)
	case ActRefund, ActRefundLater:
		d.refunds = append(d.refunds, step.N)
	case ActInquire, ActChargeBack:
		d.disputes = append(d.disputes, step.N)
	}
}

// opening draws the beginning of a payment.
func (d *drawing) opening() Step {
	if d.one(12) {
		return Step{Act: ActSubscribe, Opening: &Opening{Currency: "eur", Pricing: Pricing{Subtotal: 1 + d.rng.Int64N(5000)}}}
	}
	order := pick(d, d.life.Orders...)
	o := &Opening{Currency: order.Currency, Method: pick(d, Card, Card, Debit), Pricing: d.pricing(order)}
	o.Manual = o.Method == Card && d.one(4)
	step := Step{Act: pick(d, ActOpenSession, ActOpenSession, ActOpenSession, ActOpenSession, ActCreateIntent, ActChargeDirectly), Opening: o}
	if o.Pricing.Total() == 0 { // only a session can be free
		step.Act = ActOpenSession
	}
	if d.one(20) {
		o.Currency = pick(d, "eur", "usd", "gbp")
	}
	switch d.rng.IntN(20) {
	case 0, 1, 2, 3, 4, 5: // as paidonce opens it
		o.OnSession, o.OnIntent = order.ID, order.ID
	case 6, 7:
		o.OnSession = order.ID
	case 8, 9:
		o.Reference = order.ID
	case 10, 11, 12:
		o.OnIntent = order.ID
	case 13, 14: // a Payment Link: nothing in it names an order
		o.Link = fmt.Sprintf("plink_%d", d.life.Seed)
		o.Reference = pick(d, "", order.ID)
		o.OnSession = pick(d, "", order.ID)
		o.OnIntent = pick(d, "", order.ID)
	case 15: // those that speak may not agree
		o.OnSession = order.ID
		o.OnIntent = pick(d, d.life.Orders...).ID
	case 16: // another shop's
		o.OnSession, o.OnIntent = "nobody", "nobody"
	default: // only a registered id can tell
	}
	if step.Act != ActOpenSession {
		o.Link, o.Reference, o.OnSession = "", "", ""
		o.Manual = o.Manual && step.Act == ActCreateIntent
		o.Pricing = Pricing{Subtotal: o.Pricing.Total()}
	}
	return step
}

// pricing is what a session asks for: mostly the order's amount.
func (d *drawing) pricing(order Order) Pricing {
	p := Pricing{Subtotal: order.Total}
	if d.one(3) {
		p.Tax = d.amount(50 * d.unit)
	}
	if d.one(3) {
		p.Shipping = d.amount(50 * d.unit)
	}
	if d.one(4) && order.Total > 0 {
		p.Discount = d.amount(order.Total)
	}
	if order.Policy != "subtotal" {
		// The lines come to whatever makes the total the order's.
		p.Discount = min(p.Discount, order.Total)
		p.Subtotal = order.Total + p.Discount
		if p.Tax+p.Shipping <= order.Total {
			p.Subtotal -= p.Tax + p.Shipping
		} else {
			p.Tax, p.Shipping = 0, 0
		}
	}
	switch {
	case d.one(14):
		p.Subtotal += d.amount(50 * d.unit)
	case d.one(14) && p.Subtotal > p.Discount+d.unit:
		p.Subtotal -= d.unit
	}
	return p
}

// register decides what the shop says of its orders: the ids that it knows, if
// it registers them at all.
func (d *drawing) register() {
	a := d.stage.account
	for i := range d.life.Orders {
		o := &d.life.Orders[i]
		o.Unregistered = d.one(15)
		if d.one(12) {
			o.Closed = a.cfg.Start + 1 + d.rng.Int64N(a.now-a.cfg.Start+1)
		}
	}
	taken := make(map[string]bool)
	for _, s := range d.life.Steps {
		o := s.Opening
		if o == nil || s.Act == ActSubscribe || o.Link != "" && !d.one(4) {
			continue
		}
		silent := o.OnSession == "" && o.OnIntent == "" && o.Reference == ""
		if !silent && !d.one(6) {
			continue
		}
		if silent && d.one(4) {
			continue // nobody's
		}
		order := &d.life.Orders[d.rng.IntN(len(d.life.Orders))]
		id := pick(d, d.stage.sessions[s.N], d.stage.intent(s.N), d.stage.charge(s.N))
		if id == "" || taken[id] {
			continue
		}
		taken[id] = true
		order.Refs = append(order.Refs, id)
	}
	for _, n := range d.openings {
		id := d.stage.intent(n)
		order := &d.life.Orders[d.rng.IntN(len(d.life.Orders))]
		if id != "" && order.PaymentIntent == "" && !taken[id] && a.intents[id].Invoice == "" && d.one(25) {
			taken[id] = true
			order.PaymentIntent = id
		}
	}
}
