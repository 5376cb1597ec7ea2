//! Handles of device memory, which ranks export to each other.

use std::any::Any;

/// What a session exports to another: where its values lie, or a point in its device's work; in the backend's own type.
pub type ExportedHandle = Box<dyn Any + Send>;

/// A handle that sessions of other processes on the same machine can take: bytes that say where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpcHandle(pub Vec<u8>);

/// Packs IPC handles into one message, each after its length; `None` where a handle is of another kind.
pub(super) fn packed(handles: Vec<ExportedHandle>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for handle in handles {
        let IpcHandle(own) = *handle.downcast::<IpcHandle>().ok()?;
        bytes.extend_from_slice(&(own.len() as u64).to_le_bytes());
        bytes.extend(own);
    }
    Some(bytes)
}

/// Unpacks the IPC handles of a message; `None` where the message is not of that form.
pub(super) fn unpacked(mut bytes: &[u8]) -> Option<Vec<ExportedHandle>> {
    let mut handles: Vec<ExportedHandle> = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        let (own, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        handles.push(Box::new(IpcHandle(own.to_vec())));
        bytes = rest;
    }
    Some(handles)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipc_handles_come_back_as_they_were_packed() {
        let ipc_handles = [vec![], vec![7; 300], vec![1, 2, 3]].map(IpcHandle);
        let handles = |ipc_handles: &[IpcHandle]| {
            ipc_handles.iter().map(|own| Box::new(own.clone()) as ExportedHandle).collect()
        };
        let bytes = packed(handles(&ipc_handles)).unwrap();
        let back =
            unpacked(&bytes).unwrap().into_iter().map(|handle| *handle.downcast::<IpcHandle>().unwrap());
        assert!(back.eq(ipc_handles));
        assert!(unpacked(&bytes[..bytes.len() - 1]).is_none() && unpacked(&[0; 7]).is_none());
        assert!(packed(vec![Box::new(IpcHandle(vec![1])), Box::new(3_u32)]).is_none());
    }
}
