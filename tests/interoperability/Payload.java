import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.AlgorithmParameters;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.interfaces.ECPrivateKey;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECFieldFp;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.ECParameterSpec;
import java.security.spec.ECPoint;
import java.security.spec.ECPrivateKeySpec;
import java.security.spec.ECPublicKeySpec;
import java.util.Arrays;
import java.util.Base64;
import javax.crypto.Cipher;
import javax.crypto.KeyAgreement;
import javax.crypto.Mac;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * The sealed payload with nothing but the JDK's {@code javax.crypto}, as Android has it too. Driven by
 * tests/it/interoperability.rs; the protocol is in README.md.
 */
final class Payload {
    private static final int POINT = 65;
    private static final int IV = 12;
    private static final int TAG = 16;
    private static final int[] PADDED = {256, 512, 1024, 1792, 2560};
    private static final byte[] INFO = "sovereign-push-v1".getBytes(StandardCharsets.US_ASCII);
    private static final SecureRandom RANDOM = new SecureRandom();

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(line.split(" ", -1)));
        }
    }

    private static String answer(String[] call) {
        try {
            return "ok " + switch (call[0]) {
                case "generate" -> generate();
                case "seal" -> seal(decode(call[1]), decode(call[2]));
                case "open" -> encode(open(decode(call[1]), decode(call[3])));
                default -> throw new IllegalArgumentException("no such call");
            };
        } catch (GeneralSecurityException | IllegalArgumentException refused) {
            return "refused";
        }
    }

    private static String generate() throws GeneralSecurityException {
        KeyPair pair = newPair();
        byte[] scalar = fixed(((ECPrivateKey) pair.getPrivate()).getS());
        return encode(scalar) + " " + encode(bytesOf(pair.getPublic()));
    }

    private static String seal(byte[] devicePoint, byte[] text) throws GeneralSecurityException {
        KeyPair ephemeral = newPair();
        byte[] iv = new byte[IV];
        RANDOM.nextBytes(iv);
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        SecretKeySpec key = derive(ephemeral.getPrivate(), publicKey(devicePoint));
        cipher.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(TAG * 8, iv));
        byte[] sealed = cipher.doFinal(pad(text));
        // The JDK puts the tag last; the payload has it first.
        int ciphertext = sealed.length - TAG;
        return encode(ByteBuffer.allocate(POINT + IV + sealed.length)
                .put(bytesOf(ephemeral.getPublic())).put(iv)
                .put(sealed, ciphertext, TAG).put(sealed, 0, ciphertext)
                .array());
    }

    private static byte[] open(byte[] scalar, byte[] payload) throws GeneralSecurityException {
        if (payload.length < POINT + IV + TAG) {
            throw new IllegalArgumentException("too short");
        }
        PublicKey ephemeral = publicKey(Arrays.copyOf(payload, POINT));
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        GCMParameterSpec iv = new GCMParameterSpec(TAG * 8, payload, POINT, IV);
        cipher.init(Cipher.DECRYPT_MODE, derive(privateKey(scalar), ephemeral), iv);
        int tag = POINT + IV;
        int ciphertext = tag + TAG;
        ByteBuffer tagLast = ByteBuffer.allocate(payload.length - tag)
                .put(payload, ciphertext, payload.length - ciphertext)
                .put(payload, tag, TAG);
        return cipher.doFinal(tagLast.array());
    }

    /** HKDF-SHA256 (RFC 5869) without salt; 32 bytes are its first block. */
    private static SecretKeySpec derive(PrivateKey ours, PublicKey theirs) throws GeneralSecurityException {
        KeyAgreement agreement = KeyAgreement.getInstance("ECDH");
        agreement.init(ours);
        agreement.doPhase(theirs, true);
        byte[] extracted = hmac(new byte[32], agreement.generateSecret());
        byte[] info = Arrays.copyOf(INFO, INFO.length + 1);
        info[INFO.length] = 1;
        return new SecretKeySpec(hmac(extracted, info), "AES");
    }

    private static byte[] hmac(byte[] key, byte[] data) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(data);
    }

    private static PublicKey publicKey(byte[] point) throws GeneralSecurityException {
        if (point.length != POINT || point[0] != 4) {
            throw new IllegalArgumentException("not an uncompressed point");
        }
        BigInteger x = new BigInteger(1, Arrays.copyOfRange(point, 1, 33));
        BigInteger y = new BigInteger(1, Arrays.copyOfRange(point, 33, POINT));
        ECParameterSpec curve = curve();
        requireOnCurve(x, y, curve);
        return KeyFactory.getInstance("EC").generatePublic(new ECPublicKeySpec(new ECPoint(x, y), curve));
    }

    /** KeyFactory takes any pair of numbers; a point off the curve would give the private key away bit by bit. */
    private static void requireOnCurve(BigInteger x, BigInteger y, ECParameterSpec curve) {
        BigInteger p = ((ECFieldFp) curve.getCurve().getField()).getP();
        BigInteger right = x.pow(3).add(curve.getCurve().getA().multiply(x)).add(curve.getCurve().getB()).mod(p);
        if (x.compareTo(p) >= 0 || y.compareTo(p) >= 0 || !y.pow(2).mod(p).equals(right)) {
            throw new IllegalArgumentException("not on the curve");
        }
    }

    private static PrivateKey privateKey(byte[] scalar) throws GeneralSecurityException {
        ECPrivateKeySpec spec = new ECPrivateKeySpec(new BigInteger(1, scalar), curve());
        return KeyFactory.getInstance("EC").generatePrivate(spec);
    }

    private static ECParameterSpec curve() throws GeneralSecurityException {
        AlgorithmParameters parameters = AlgorithmParameters.getInstance("EC");
        parameters.init(new ECGenParameterSpec("secp256r1"));
        return parameters.getParameterSpec(ECParameterSpec.class);
    }

    private static KeyPair newPair() throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"), RANDOM);
        return generator.generateKeyPair();
    }

    private static byte[] bytesOf(PublicKey key) {
        ECPoint point = ((ECPublicKey) key).getW();
        return ByteBuffer.allocate(POINT)
                .put((byte) 4).put(fixed(point.getAffineX())).put(fixed(point.getAffineY()))
                .array();
    }

    /** 32 bytes, big-endian: BigInteger may give one more or some less. */
    private static byte[] fixed(BigInteger number) {
        byte[] bytes = number.toByteArray();
        byte[] out = new byte[32];
        int from = Math.max(0, bytes.length - out.length);
        System.arraycopy(bytes, from, out, out.length - (bytes.length - from), bytes.length - from);
        return out;
    }

    private static byte[] pad(byte[] json) {
        int length = Arrays.stream(PADDED).filter(padded -> json.length <= padded).findFirst()
                .orElseThrow(() -> new IllegalArgumentException("too large"));
        byte[] padded = Arrays.copyOf(json, length);
        Arrays.fill(padded, json.length, length, (byte) ' ');
        return padded;
    }

    private static String encode(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static byte[] decode(String text) {
        return Base64.getDecoder().decode(text);
    }
}
