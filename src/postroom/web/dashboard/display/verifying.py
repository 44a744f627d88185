"""Sample code with which an endpoint checks that a request comes from here, in three languages."""

PYTHON = """import hashlib, hmac, time

def is_from_postroom(secret: str, timestamp: str, signature: str, body: bytes) -> bool:
    wanted = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    is_fresh = timestamp.isdigit() and abs(time.time() - int(timestamp)) <= 300
    return is_fresh and hmac.compare_digest(wanted.encode(), signature.encode())"""

NODE = """const crypto = require("node:crypto");

function isFromPostroom(secret, timestamp, signature, body) {
  const wanted = crypto.createHmac("sha256", secret).update(`${timestamp}.${body}`).digest();
  const given = Buffer.from(signature, "hex");
  const isFresh = Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300;
  return isFresh && given.length === wanted.length && crypto.timingSafeEqual(wanted, given);
}"""

GO = """func isFromPostroom(secret, timestamp, signature string, body []byte) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || math.Abs(float64(time.Now().Unix()-seconds)) > 300 {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(signature))
}"""

SAMPLES = (("Python", PYTHON), ("Node", NODE), ("Go", GO))
