// A receiver for the http effects of paidonce. It acts once on each webhook-id.
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(process.env.SHOP_HOOK_SECRET) // whsec_…, as in paidonce

async function receive(req) {
  if (req.method !== 'POST' || req.url !== '/paid') return 404
  let body = ''
  for await (const chunk of req.setEncoding('utf8')) if (body.length <= 2 ** 20) body += chunk
  if (body.length > 2 ** 20) return 400
  try { webhook.verify(body, req.headers) } catch { return 401 } // also what is older than 5 minutes
  once(req.headers['webhook-id'], body)
  return 204
}

// once does the work that an id stands for, if it has not been done. Here the
// directory stands for all of it, made once or not at all. In a shop it is one
// database transaction: insert the id (UNIQUE; if it is there, nothing is left
// to do), and deliver what the body says was bought.
function once(id, _body) {
  try {
    mkdirSync(`seen/${createHash('sha256').update(id).digest('hex')}`)
  } catch (err) {
    if (err.code !== 'EEXIST') throw err
  }
}

mkdirSync('seen', { recursive: true })
const server = createServer(async (req, res) => {
  res.writeHead(await receive(req).catch(() => 500)).end() // after a 500 it comes again
}).listen(process.env.PORT, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`))
