"""A session of requests on a site: what a person's script would do. Arguments: the address, the folder served."""

import pathlib
import re
import sys
import urllib.parse

import requests

site, folder = sys.argv[1], pathlib.Path(sys.argv[2])
session = requests.Session()
# Proxies of whoever runs this are not for the machine itself.
session.trust_env = False


def check(is_so, *words):
    if not is_so:
        sys.exit("not so: " + " ".join(str(word) for word in words))


def get(path, status=200, **more):
    answer = session.get(site + path, timeout=20, **more)
    check(answer.status_code == status, path, answer.status_code, answer.text[:200])
    return answer


whole = (folder / "large").read_bytes()
check(get("/large").content == whole, "the whole file")
check(get("/empty").content == b"", "the empty file")
part = get("/large", 206, headers={"Range": "bytes=1000-1999"})
check(part.content == whole[1000:2000], "a part")
check(part.headers["Content-Range"] == f"bytes 1000-1999/{len(whole)}", part.headers)
streamed = b"".join(get("/large", stream=True).iter_content(10_007))
check(streamed == whole, "the file in pieces")
tag = get("/large").headers["ETag"]
check(get("/large", 304, headers={"If-None-Match": tag}).content == b"", "a file that is known")
check(get("/nothing", 404).headers["Content-Type"].startswith("text/html"), "what is not there")
check(session.head(site + "/large", timeout=20).headers["Content-Length"] == str(len(whole)), "a head")
check("you" in get("/hello", params={"name": "you & <me>"}).text, "a greeting")
check("<me>" not in get("/hello", params={"name": "you & <me>"}).text, "a name that is no markup")

# Advertisements: the session keeps the cookie.
first = get("/spec/ad", cookies={"my_cookie": "user_id=3&last_ad=1"}).headers.get("Set-Cookie", "")
check("user_id=3" in first, "a cookie", first)
second = get("/spec/ad").headers.get("Set-Cookie", "")
check(first != second, "the next advertisement", first, second)
session.cookies.clear()

form = {"urlroot": "/spec/static", "dir": 1, "class": 0, "num": 1, "client": 5}
for count in range(3):
    answer = session.post(site + "/spec/post", data=form, timeout=20)
    check(answer.status_code == 200 and "wrapped" in answer.text, answer.status_code, answer.text)
check(session.post(site + "/spec/post", data={"urlroot": "x"}, timeout=20).status_code == 400, "half a form")
check(session.post(site + "/spec/post", data=b"x" * 100_000, timeout=20).status_code in (413, 415), "no form")

# What comes in pieces of unknown number is taken, too.
pieces = (piece.encode() for piece in ("urlroot=/x&", "dir=1&class=0&", "num=1&client=5"))
kind = {"Content-Type": "application/x-www-form-urlencoded"}
check(session.post(site + "/spec/post", data=pieces, headers=kind, timeout=20).status_code == 200, "pieces")

status = get("/status/status.json").json()
check(isinstance(status, dict) and status, status)

# The page leads to its table, with a slash at the end of its address and without.
for page in "/status", "/status/":
    found = re.findall(r'(?:href="|url=)([^"]*table)"', get(page).text)
    check(len(found) == 2, found)
    for reference in found:
        answer = get(urllib.parse.urljoin(page, reference))
        check(answer.status_code == 200 and "<h2>Processes</h2>" in answer.text, page, reference)
print("all is so")
