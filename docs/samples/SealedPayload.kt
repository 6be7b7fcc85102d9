package fs.sovereign.push

import java.math.BigInteger
import java.security.AlgorithmParameters
import java.security.GeneralSecurityException
import java.security.KeyFactory
import java.security.PrivateKey
import java.security.PublicKey
import java.security.interfaces.ECPublicKey
import java.security.spec.ECFieldFp
import java.security.spec.ECGenParameterSpec
import java.security.spec.ECParameterSpec
import java.security.spec.ECPoint
import java.security.spec.ECPublicKeySpec
import java.util.Base64
import javax.crypto.Cipher
import javax.crypto.KeyAgreement
import javax.crypto.Mac
import javax.crypto.spec.GCMParameterSpec
import javax.crypto.spec.SecretKeySpec

/** Opens what an instance sealed for this device. Throws for anything that is not authentic. */
object SealedPayload {
    private const val POINT = 65
    private const val IV = 12
    private const val TAG = 16
    private val INFO = "sovereign-push-v1".toByteArray(Charsets.US_ASCII)

    /** The JSON text, with the spaces that pad it. */
    fun open(encryptedPayload: String, device: PrivateKey): String {
        val payload = Base64.getDecoder().decode(encryptedPayload)
        if (payload.size < POINT + IV + TAG) throw GeneralSecurityException("too short")
        val tag = payload.copyOfRange(POINT + IV, POINT + IV + TAG)
        val ciphertext = payload.copyOfRange(POINT + IV + TAG, payload.size)
        val cipher = Cipher.getInstance("AES/GCM/NoPadding")
        val key = derive(device, publicKey(payload.copyOf(POINT)))
        cipher.init(Cipher.DECRYPT_MODE, key, GCMParameterSpec(TAG * 8, payload, POINT, IV))
        return String(cipher.doFinal(ciphertext + tag), Charsets.UTF_8)
    }

    /** What the instance is told: base64 of 0x04, X and Y. */
    fun export(key: PublicKey): String {
        val point = (key as ECPublicKey).w
        val bytes = byteArrayOf(4) + fixed(point.affineX) + fixed(point.affineY)
        return Base64.getEncoder().encodeToString(bytes)
    }

    /** HKDF-SHA256 (RFC 5869) without salt; 32 bytes are its first block. */
    private fun derive(device: PrivateKey, ephemeral: PublicKey): SecretKeySpec {
        val agreement = KeyAgreement.getInstance("ECDH")
        agreement.init(device)
        agreement.doPhase(ephemeral, true)
        val extracted = hmac(ByteArray(32), agreement.generateSecret())
        return SecretKeySpec(hmac(extracted, INFO + byteArrayOf(1)), "AES")
    }

    private fun hmac(key: ByteArray, data: ByteArray): ByteArray {
        val mac = Mac.getInstance("HmacSHA256")
        mac.init(SecretKeySpec(key, "HmacSHA256"))
        return mac.doFinal(data)
    }

    private fun publicKey(point: ByteArray): PublicKey {
        if (point[0] != 4.toByte()) throw GeneralSecurityException("not an uncompressed point")
        val x = BigInteger(1, point.copyOfRange(1, 33))
        val y = BigInteger(1, point.copyOfRange(33, POINT))
        val curve = AlgorithmParameters.getInstance("EC")
            .apply { init(ECGenParameterSpec("secp256r1")) }
            .getParameterSpec(ECParameterSpec::class.java)
        requireOnCurve(x, y, curve)
        return KeyFactory.getInstance("EC").generatePublic(ECPublicKeySpec(ECPoint(x, y), curve))
    }

    /** A point off the curve would give the private key away bit by bit, and not every provider looks. */
    private fun requireOnCurve(x: BigInteger, y: BigInteger, spec: ECParameterSpec) {
        val p = (spec.curve.field as ECFieldFp).p
        val right = (x.pow(3) + spec.curve.a * x + spec.curve.b).mod(p)
        if (x >= p || y >= p || y.pow(2).mod(p) != right) throw GeneralSecurityException("not on the curve")
    }

    private fun fixed(number: BigInteger): ByteArray {
        val bytes = number.toByteArray()
        return ByteArray(maxOf(0, 32 - bytes.size)) + bytes.copyOfRange(maxOf(0, bytes.size - 32), bytes.size)
    }
}
