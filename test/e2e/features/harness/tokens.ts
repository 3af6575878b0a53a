/** A JWT issuer: signs tokens and publishes its key set. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

export class TokenIssuer {
  readonly name: string;
  #key!: KeyObject;
  #keys: object[] = [];
  #count = 0;

  constructor(name: string) {
    this.name = name;
    this.rotate();
  }

  /** The public keys as a JWK set (RFC 7517). */
  get keySet(): string {
    return JSON.stringify({ keys: this.#keys });
  }

  /** Replaces the signing key; the set then contains only the new one. */
  rotate(): void {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#key = privateKey;
    this.#keys = [{ ...publicKey.export({ format: 'jwk' }), kid: this.#kid(++this.#count), alg: 'ES256', use: 'sig' }];
  }

  /** A token that is valid for an hour. */
  token(claims: Readonly<Record<string, unknown>> = {}): string {
    const now = Math.floor(Date.now() / 1_000);
    const header = { alg: 'ES256', typ: 'JWT', kid: this.#kid(this.#count) };
    const payload = { iss: this.name, sub: 'user', iat: now, exp: now + 3_600, ...claims };
    const text = [header, payload]
      .map((segment) => Buffer.from(JSON.stringify(segment)).toString('base64url'))
      .join('.');
    const signature = sign('sha256', Buffer.from(text), { key: this.#key, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  }

  #kid(count: number): string {
    return `${this.name}-${count}`;
  }
}

/** An Authorization header with the token. */
export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}
