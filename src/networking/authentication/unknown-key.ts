/**
 * Key of issuers without known keys. The private key was discarded after generation, so all tokens of such an issuer
 * are rejected.
 */
export const unknownKey = {
  kty: 'RSA',
  alg: 'RS256',
  use: 'sig',
  kid: 'unknown',
  e: 'AQAB',
  n: 'xoVT7-dUELaLdRGYR2hkqJBJYYnyxAaX1C12sD1zz6PlcC3XNimoXCLCXaKKEi3xHN8C6R2ChFUB86177Eh1tBPrvUWIVDmMc5q5eo_gtEW9xrpdKlVopMv-aloM6-G6BiM3AEu0WYdmvF3lnGqZic158a-Kqan-UqM6_g8ohirm9KUa0TzQ9s1sVmRlFUSgDaYlAqf70aGpfUmZSDX7VUFXvom5yP5zDESuV9lSQUBxeevRa7c3rpVkf5TGrxSm__GA6lGeGepZabMZaapU7CqhpiqvR6xjpaJdZxoe_8w9z8x5_SxbOFWLL45vnjmxTuL2cd23_UtD8B-PECWpYQ',
};
