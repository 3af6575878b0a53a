"""UID listen PROTOCOL PORT...: reports to each client the port that it reached, and its original destination. `tcp` sends first, `reply` and `http` wait for the client's bytes.
UID ask: for each line `PROTOCOL ADDRESS PORT [SOURCE PORT]` of its input, the response of that destination: `refused`, `silent`, or the listener's text. `reply` sends first; for `http` the fourth word is the Host header.

Node cannot ask the kernel for a connection's original destination, nor listen transparently, so this is Python."""

import os
import socket
import struct
import sys
import threading

SO_ORIGINAL_DST = 80
IP_TRANSPARENT = 19
IPV6_TRANSPARENT = 75


def place(address):
    host, port = address[0], address[1]
    return f'{host.removeprefix("::ffff:")}:{port}'


def original(connection):
    family4 = connection.getsockname()[0].startswith("::ffff:")
    try:
        if family4:
            raw = connection.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
            port, host = struct.unpack("!2xH4s8x", raw)
            return f"{socket.inet_ntop(socket.AF_INET, host)}:{port}"
        raw = connection.getsockopt(socket.IPPROTO_IPV6, SO_ORIGINAL_DST, 28)
        port, host = struct.unpack("!2xH4x16s4x", raw)
        return f"{socket.inet_ntop(socket.AF_INET6, host)}:{port}"
    except OSError:
        # Nothing was rewritten: the local address is the original destination.
        return place(connection.getsockname())


def serve_tcp(server, port, protocol):
    while True:
        connection, _ = server.accept()
        meant = place(connection.getsockname()) if protocol == "tproxy" else original(connection)
        words = f"{port} for {meant}"
        threading.Thread(target=respond, args=(connection, words, protocol), daemon=True).start()


def respond(connection, words, protocol):
    with connection:
        try:
            if protocol in ("reply", "http"):
                connection.settimeout(10)
                if not connection.recv(4096):
                    return
            if protocol == "http":
                words = f"HTTP/1.1 200 OK\r\nContent-Length: {len(words)}\r\nConnection: close\r\n\r\n{words}"
            connection.sendall(words.encode())
        except OSError:
            pass


def serve_udp(server, port):
    while True:
        _, client = server.recvfrom(4096)
        server.sendto(f"{port}".encode(), client)


def bound(kind, host, port, transparent=False):
    server = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    if host == "::":
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if transparent:
        server.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
        server.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
    server.bind((host, port))
    return server


def listen(words):
    for word in words:
        protocol, port, *hosts = word.split(" ")
        if protocol == "udp":
            # A client ignores a response from another address than the one that it queried.
            for host in hosts:
                server = bound(socket.SOCK_DGRAM, host, int(port))
                threading.Thread(target=serve_udp, args=(server, port), daemon=True).start()
        else:
            server = bound(socket.SOCK_STREAM, "::", int(port), protocol == "tproxy")
            server.listen(128)
            threading.Thread(target=serve_tcp, args=(server, port, protocol), daemon=True).start()
    print("listening", flush=True)
    threading.Event().wait()


def answer(word):
    protocol, host, port, *more = word.split(" ")
    source = [] if protocol == "http" else more
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    with socket.socket(family, kind) as client:
        client.settimeout(3)
        if source:
            client.bind(("", int(source[0])))
        try:
            client.connect((host, int(port)))
            if protocol in ("udp", "reply"):
                client.send(b"question")
            if protocol == "http":
                client.send(f"GET / HTTP/1.1\r\nHost: {more[0]}\r\nConnection: close\r\n\r\n".encode())
                return response(client)
            return client.recv(4096).decode() or "closed"
        except ConnectionError:
            return "refused"
        except OSError:
            return "silent"


def response(client):
    """The status of an HTTP response, and its body if it is 200."""
    received = b""
    while chunk := client.recv(4096):
        received += chunk
    head, _, body = received.decode().partition("\r\n\r\n")
    status = head.split(" ")[1] if head else "closed"
    return body if status == "200" else status


def ask(_):
    for line in sys.stdin:
        print(answer(line.rstrip("\n")), flush=True)


uid = int(sys.argv[1])
os.setgroups([])
os.setgid(uid)
# Listening transparently requires root.
os.setuid(uid)
{"listen": listen, "ask": ask}[sys.argv[2]](sys.argv[3:])
