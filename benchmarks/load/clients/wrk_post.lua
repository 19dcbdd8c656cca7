wrk.method = "POST"
wrk.body = '{"model":"m","messages":[{"role":"user","content":"Say in one sentence what a benchmark is."}],"stream":true}'
wrk.headers["content-type"] = "application/json"
