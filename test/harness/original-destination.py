"""UID listen PROTOCOL PORT...: says to each client where it came to, and where it had wanted to go.
UID ask: for each line `PROTOCOL ADDRESS PORT [SOURCE PORT]` of its input, what that destination says: `refused`, `silent`, or the listener's words.

Node cannot ask the kernel for a connection's original destination, nor listen transparently: hence Python."""

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
        # Nothing was rewritten: where it came to is where it wanted to go.
        return place(connection.getsockname())


def serve_tcp(server, port, transparent):
    while True:
        connection, _ = server.accept()
        meant = place(connection.getsockname()) if transparent else original(connection)
        try:
            connection.sendall(f"{port} for {meant}".encode())
        except OSError:
            pass
        connection.close()


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
            # An answer from an address that was not asked is none.
            for host in hosts:
                server = bound(socket.SOCK_DGRAM, host, int(port))
                threading.Thread(target=serve_udp, args=(server, port), daemon=True).start()
        else:
            transparent = protocol == "tproxy"
            server = bound(socket.SOCK_STREAM, "::", int(port), transparent)
            server.listen(128)
            threading.Thread(target=serve_tcp, args=(server, port, transparent), daemon=True).start()
    print("listening", flush=True)
    threading.Event().wait()


def answer(word):
    protocol, host, port, *source = word.split(" ")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    with socket.socket(family, kind) as client:
        client.settimeout(3)
        if source:
            client.bind(("", int(source[0])))
        try:
            client.connect((host, int(port)))
            if protocol == "udp":
                client.send(b"question")
            return client.recv(4096).decode() or "closed"
        except ConnectionError:
            return "refused"
        except OSError:
            return "silent"


def ask(_):
    for line in sys.stdin:
        print(answer(line.rstrip("\n")), flush=True)


uid = int(sys.argv[1])
os.setgroups([])
os.setgid(uid)
# Whoever listens transparently needs to be root.
os.setuid(uid)
{"listen": listen, "ask": ask}[sys.argv[2]](sys.argv[3:])
