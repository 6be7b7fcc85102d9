import CryptoKit
import Foundation

/// Opens what an instance sealed for this device. The app and its Notification Service Extension share this file.
enum SealedPayload {
    enum Fault: Error { case notBase64, tooShort, notAPoint, notAuthentic, notUTF8 }

    private static let point = 65
    private static let nonce = point..<point + 12
    private static let tag = nonce.upperBound..<nonce.upperBound + 16
    private static let info = Data("sovereign-push-v1".utf8)

    /// The JSON text, with the spaces that pad it. `SecureEnclave.P256.KeyAgreement.PrivateKey` has the same method.
    static func open(_ encryptedPayload: String, with device: P256.KeyAgreement.PrivateKey) throws -> String {
        guard let payload = Data(base64Encoded: encryptedPayload) else { throw Fault.notBase64 }
        guard payload.count >= tag.upperBound else { throw Fault.tooShort }
        guard let ephemeral = try? P256.KeyAgreement.PublicKey(x963Representation: payload.prefix(point)) else {
            throw Fault.notAPoint
        }
        let key = try device.sharedSecretFromKeyAgreement(with: ephemeral).hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: Data(), sharedInfo: info, outputByteCount: 32)
        guard
            let box = try? AES.GCM.SealedBox(
                nonce: AES.GCM.Nonce(data: payload[nonce]),
                ciphertext: payload[tag.upperBound...],
                tag: payload[tag]),
            let plaintext = try? AES.GCM.open(box, using: key)
        else { throw Fault.notAuthentic }
        guard let text = String(data: plaintext, encoding: .utf8) else { throw Fault.notUTF8 }
        return text
    }

    /// What the instance is told: base64 of 0x04, X and Y.
    static func export(_ key: P256.KeyAgreement.PublicKey) -> String {
        key.x963Representation.base64EncodedString()
    }
}
